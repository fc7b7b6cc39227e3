"""The work loop: claims tasks, runs their steps on threads, stores the results."""
