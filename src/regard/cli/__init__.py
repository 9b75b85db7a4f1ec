"""Define the `regard` command: read the options of each verb, call the library, print and save the answer."""
