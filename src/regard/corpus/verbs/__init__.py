"""The verbs that write and read stores: `regard embed`, `find`, `senses` and `shift`."""
