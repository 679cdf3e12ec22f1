"""The operator's commands: `realmgate ...`."""
