"""The agent service's HTTP API: sessions, trials and questions to people, for programs and pages on this machine."""
