"""From YAML to tables that decide: load, check, compile."""
