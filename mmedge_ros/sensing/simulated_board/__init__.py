"""A radar board without hardware, on two pseudo-terminals."""

# What a simulated board plays where no recording is named: a walking person.
PERSON = 'person'
