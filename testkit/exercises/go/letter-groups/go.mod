module letter_groups

go 1.18
