"""What traces say: functions of them, as plain data that every view shows and `--json` writes."""
