package card

// sum adds up the digits, doubling every second one from the right; the first one if double is true.
func sum(number string, double bool) (total, digits int, ok bool) {
	for i := len(number) - 1; i >= 0; i-- {
		c := number[i]
		if c == ' ' {
			continue
		}
		if c < '0' || c > '9' {
			return 0, 0, false
		}
		digit := int(c - '0')
		if double {
			digit *= 2
			if digit > 9 {
				digit -= 9
			}
		}
		total += digit
		digits++
		double = !double
	}
	return total, digits, true
}

// Valid reports whether a card number has the right check digit.
func Valid(number string) bool {
	total, digits, ok := sum(number, false)
	return ok && digits >= 2 && total%10 == 0
}

// CheckDigit returns the digit that makes the number valid.
func CheckDigit(number string) int {
	total, digits, ok := sum(number, true)
	if !ok || digits == 0 {
		return -1
	}
	return (10 - total%10) % 10
}
