package cipher

// Encrypt moves every letter a number of places in the alphabet.
func Encrypt(text string, shift int) string {
	move := func(letter, first rune) rune {
		return first + ((letter-first+rune(shift%26))%26+26)%26
	}
	result := ""
	for _, letter := range text {
		switch {
		case letter >= 'a' && letter <= 'z':
			letter = move(letter, 'a')
		case letter >= 'A' && letter <= 'Z':
			letter = move(letter, 'A')
		}
		result += string(letter)
	}
	return result
}

// Decrypt reverses Encrypt.
func Decrypt(text string, shift int) string {
	return Encrypt(text, -shift)
}
