"""What all decisions are made of: answers, the draft of a job, which jobs a command means. Imports no other room of decide."""
