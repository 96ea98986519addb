"""What there is to know of sessions and jobs, as every door to people and agents reads it. It changes nothing."""
