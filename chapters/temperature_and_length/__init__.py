"""What a head should do when the prompt gets longer: three scalings of its scores, and heads used at another length."""
