package cipher

// Encrypt moves every letter a number of places in the alphabet.
func Encrypt(text string, shift int) string {
	result := ""
	for _, letter := range text {
		if letter >= 'a' && letter < 'z' {
			letter = letter + rune(shift)
		}
		result += string(letter)
	}
	return result
}

// Decrypt reverses Encrypt.
func Decrypt(text string, shift int) string {
	return Encrypt(text, shift)
}
