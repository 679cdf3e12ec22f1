"""realmgate tests."""
