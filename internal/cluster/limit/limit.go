// Package limit has what Azure takes as names and values that people choose: tags, users, keys, names with a public address. Each function
// returns what Azure wants instead, or "" for a value that it takes. Layer L1: pure.
package limit

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kaz/internal/azure"
)

const (
	privateZone  = "Microsoft.Network/privateDnsZones"
	publicZone   = "Microsoft.Network/dnsZones"
	account      = "Microsoft.Storage/storageAccounts"
	accountName  = 128
	zoneMostTags = 15
)

// MostTags is how many tags a resource of a type has at most.
func MostTags(fullType string) int {
	if strings.EqualFold(fullType, privateZone) {
		return zoneMostTags
	}
	return azure.MostTags
}

// TagName checks the name of a tag at a resource of a type, or at any one for "".
func TagName(fullType, name string) string {
	longest := azure.LongestTagName
	if strings.EqualFold(fullType, account) {
		longest = accountName
	}
	low := strings.ToLower(name)
	switch n := utf8.RuneCountInString(name); {
	case n == 0 || n > longest || strings.ContainsAny(name, azure.NotInTagNames) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Sprintf("1 to %d characters without < > %% & \\ ? /", longest)
	case strings.HasPrefix(low, "microsoft") || strings.HasPrefix(low, "azure") || strings.HasPrefix(low, "windows"):
		return "a name that does not begin with microsoft, azure or windows, which Azure reserves"
	case strings.TrimSpace(name) != name:
		return "a name without blanks at its ends"
	}
	if !strings.EqualFold(fullType, privateZone) && !strings.EqualFold(fullType, publicZone) {
		return ""
	}
	if strings.ContainsAny(name, " ()") || unicode.IsDigit(rune(name[0])) || strings.ContainsFunc(name,
		func(r rune) bool { return r > unicode.MaxASCII }) {
		return "the name of a tag of a DNS zone: ASCII without blanks and parentheses, first no digit"
	}
	return ""
}

// TagValue checks the value of a tag.
func TagValue(value string) string {
	if utf8.RuneCountInString(value) > azure.LongestTagValue || strings.ContainsFunc(value, unicode.IsControl) {
		return fmt.Sprintf("at most %d characters in one line", azure.LongestTagValue)
	}
	return ""
}

// refusedUsers are the names that Azure does not take for the user of a machine (osProfile.adminUsername).
const refusedUsers = "administrator admin user user1 test user2 test1 user3 admin1 1 123 a actuser adm admin2 aspnet backup console " +
	"david " +
	"guest john owner root server sql support support_388945a0 sys test2 test3 user4 user5"

// systemUsers exist in images of Linux already: the agent of Azure does not make them users with a key.
const systemUsers = "bin daemon games gnats irc list lp mail man messagebus news nobody proxy sshd sync syslog systemd-network " +
	"systemd-resolve uucp www-data"

// AdminUser checks the name of the user of a machine.
func AdminUser(name string) string {
	if slices.Contains(strings.Fields(refusedUsers), strings.ToLower(name)) {
		return "a name that Azure takes for the user of a machine, such as azureuser"
	}
	if slices.Contains(strings.Fields(systemUsers), name) {
		return "a name that is no system user of Linux, such as azureuser"
	}
	return ""
}

// shortestRSA is the least number of bits of an RSA key.
const shortestRSA = 2048

// SSHKey checks a public key in the form of authorized_keys: Azure takes RSA keys of at least 2048 bits, and Ed25519 keys.
func SSHKey(key string) string {
	const want = "a public key such as 'ssh-ed25519 AAAA...'"
	parts := strings.Fields(key)
	if len(parts) < 2 || strings.ContainsAny(key, "\r\n") {
		return want
	}
	if parts[0] != "ssh-ed25519" && parts[0] != "ssh-rsa" {
		return "an Ed25519 key or an RSA key: Azure takes no other type for a machine"
	}
	blob, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil {
		return want + ": the text after " + parts[0] + " is no base64"
	}
	fields, complete := sshFields(blob)
	switch {
	case len(fields) == 0 || string(fields[0]) != parts[0]:
		return want + ": the key is not of the type that its line begins with"
	case !complete, parts[0] == "ssh-ed25519" && (len(fields) != 2 || len(fields[1]) != 32), parts[0] == "ssh-rsa" && len(fields) != 3:
		return want + ": the key is cut off"
	case parts[0] == "ssh-rsa" && 8*len(strings.TrimLeft(string(fields[2]), "\x00")) < shortestRSA:
		return fmt.Sprintf("an RSA key of at least %d bits, or an Ed25519 key", shortestRSA)
	}
	return ""
}

// sshFields returns the fields of a public key, each with its length before it, and whether the key ends after a field.
func sshFields(blob []byte) (fields [][]byte, complete bool) {
	for len(blob) >= 4 {
		n := uint64(binary.BigEndian.Uint32(blob))
		if n > uint64(len(blob)-4) {
			break
		}
		fields, blob = append(fields, blob[4:4+n]), blob[4+n:]
	}
	return fields, len(blob) == 0
}

// PublicName checks a name that becomes a part of a public address: Azure reserves trademarks.
func PublicName(name string) string {
	low := strings.ToLower(name)
	for _, word := range []string{"microsoft", "windows"} {
		if strings.Contains(low, word) {
			return "a name without " + word + ", which Azure reserves"
		}
	}
	for _, word := range []string{"login", "xbox"} {
		if strings.HasPrefix(low, word) {
			return "a name that does not begin with " + word + ", which Azure reserves"
		}
	}
	return ""
}
