"""Pictures of a case for people. A picture is derived from files or values; it decides nothing and changes nothing."""
