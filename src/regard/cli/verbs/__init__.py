"""The verbs of the command, one file each: arguments and calls.

Each imports what loads torch and transformers where it is used: help and bad input do not wait for it.
"""
