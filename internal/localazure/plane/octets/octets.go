// Package octets reads what requests to blobs and files say of bytes: ranges and checksums. Layer L2.
package octets

import (
	"crypto/md5" // the API has headers with it; it protects nothing
	"encoding/base64"
	"encoding/binary"
	"hash/crc64"
	"net/http"
	"strconv"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// Range is a range of bytes, without the byte at To.
type Range struct{ From, To int64 }

// Wanted returns the range that a request asks for, the whole if it asks for none.
func Wanted(given http.Header, size int64) (within Range, partial bool, err error) {
	text := given.Get("x-ms-range")
	if text == "" {
		text = given.Get("Range")
	}
	whole := Range{To: size}
	if text == "" {
		return whole, false, nil
	}
	asked, err := Parse("x-ms-range", text)
	if err != nil {
		return whole, false, err
	}
	if asked.To < 0 || asked.To > size {
		asked.To = size
	}
	if asked.From >= size {
		return whole, false, Outside(text, size)
	}
	return asked, true, nil
}

// Outside refuses a range that begins behind the end.
func Outside(text string, size int64) error {
	return behaviour.Refusal(http.StatusRequestedRangeNotSatisfiable, "InvalidRange",
		"The range specified is invalid for the current size of the resource: %s of %d bytes.", text, size)
}

// Parse parses bytes=FROM-TO, the value of a header. The end is below 0 if there is none.
func Parse(header, text string) (Range, error) {
	bad := behaviour.Refusal(http.StatusBadRequest, "InvalidHeaderValue",
		"The value for one of the HTTP headers is not in the correct format: %s is %q, want bytes=FROM-TO.", header, text)
	numbers, ok := strings.CutPrefix(text, "bytes=")
	first, last, dash := strings.Cut(numbers, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	if !ok || !dash || err != nil || from < 0 {
		return Range{}, bad
	}
	if last == "" {
		return Range{From: from, To: -1}, nil
	}
	to, err := strconv.ParseInt(last, 10, 64)
	if err != nil || to < from {
		return Range{}, bad
	}
	return Range{From: from, To: to + 1}, nil
}

// azureCRC64 is the polynomial of the sums of Azure Storage.
var azureCRC64 = crc64.MakeTable(0x9A6C9329AC4BC9B5)

// CRC64 is the sum of data as headers have it.
func CRC64(data []byte) string {
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, crc64.Checksum(data, azureCRC64)))
}

// MD5 is the sum of data as headers have it.
func MD5(data []byte) string {
	sum := md5.Sum(data)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Check returns why data is not what the sums in the headers of its request say.
func Check(given http.Header, data []byte) error {
	if err := CheckMD5(given.Get("Content-MD5"), data); err != nil {
		return err
	}
	return CheckCRC64(given.Get("x-ms-content-crc64"), data)
}

// CheckMD5 returns why data does not have a sum, which is "" for any.
func CheckMD5(want string, data []byte) error { return check(want, data, "MD5", "Md5Mismatch", MD5) }

// CheckCRC64 returns why data does not have a sum, which is "" for any.
func CheckCRC64(want string, data []byte) error {
	return check(want, data, "CRC64", "Crc64Mismatch", CRC64)
}

func check(want string, data []byte, kind, code string, sum func([]byte) string) error {
	if want == "" || want == sum(data) {
		return nil
	}
	return behaviour.Refusal(http.StatusBadRequest, code,
		"The %s value specified in the request did not match with the %s value calculated by the server.", kind, kind)
}
