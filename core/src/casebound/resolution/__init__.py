"""Plan, look up, assess: which rows of the operator's catalogs is the report about?"""
