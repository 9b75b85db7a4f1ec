"""Whether the meaning of a word differs between two stores, or two parts of one."""
