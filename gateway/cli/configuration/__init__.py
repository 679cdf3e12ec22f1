"""`realmgate config`: check a configuration, show all of it, write a first one."""
