"""`realmgate trace`: the life of one message, as the realm's records have it."""
