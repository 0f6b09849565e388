package csi

import (
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Page cuts a page out of a list. A token is the index of the page's first element. next is "" at the end.
func Page[T any](all []T, token string, most int32) (items []T, next string, err error) {
	first := 0
	if token != "" {
		if first, err = strconv.Atoi(token); err != nil || first < 0 || first > len(all) {
			return nil, "", status.Errorf(codes.Aborted, "starting_token %q is not valid now: start again without a token", token)
		}
	}
	items = all[first:]
	if most > 0 && int(most) < len(items) {
		return items[:most], strconv.Itoa(first + int(most)), nil
	}
	return items, "", nil
}
