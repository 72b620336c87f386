package brackets

// Check returns the position of the first faulty bracket, or -1.
func Check(text string) int {
	closing := map[byte]byte{'(': ')', '[': ']', '{': '}'}
	var open []int
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if quoted {
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
			continue
		}
		switch c {
		case '"':
			quoted = true
		case '(', '[', '{':
			open = append(open, i)
		case ')', ']', '}':
			if len(open) == 0 || closing[text[open[len(open)-1]]] != c {
				return i
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return open[len(open)-1]
	}
	return -1
}
