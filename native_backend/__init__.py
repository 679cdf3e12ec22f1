"""The native side: a realm of queues and channels, written once over a log that keeps records."""
