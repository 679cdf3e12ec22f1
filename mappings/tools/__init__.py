"""What authors of tables use: `realmgate mappings ...`."""
