"""`realmgate reconcile`: its arguments, its steps and its exit code."""
