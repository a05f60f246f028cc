"""The worker process: takes requests from one pool, runs them on its engine, and says how they ended."""
