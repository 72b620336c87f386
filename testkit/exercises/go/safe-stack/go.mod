module safe_stack

go 1.18
