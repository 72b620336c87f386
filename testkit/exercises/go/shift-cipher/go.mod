module shift_cipher

go 1.18
