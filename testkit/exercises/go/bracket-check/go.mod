module bracket_check

go 1.18
