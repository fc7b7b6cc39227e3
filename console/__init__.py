"""The console: pages for browsers, which use the API as any other client does."""
