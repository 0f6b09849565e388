package scaleset

// osDiskName returns the name of the OS disk of an instance. A name that is too long has a part shortened.
func osDiskName(instance, unique string) string {
	const longest = 80
	name := instance + "_OsDisk_1_" + unique
	if len(name) > longest {
		name = instance + "_OS__1_" + unique
	}
	return name
}

// base36 returns the six digits by which computer names contain the number of an instance.
func base36(n int) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	const width = 6
	var text [width]byte
	for i := width - 1; i >= 0; i-- {
		text[i] = digits[n%len(digits)]
		n /= len(digits)
	}
	return string(text[:])
}
