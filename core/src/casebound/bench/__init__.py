"""The measurement kit: frozen corpora, what is measured, and what came out. It knows no corpus, no vendor, no stage."""
