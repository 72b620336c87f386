module turnstile

go 1.18
