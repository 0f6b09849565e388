package controller

import (
	"fmt"
	"strings"

	"kaz/internal/reconcile"
)

// Suspicion reports whether a step that failed is about a request, by its place in the batch.
type Suspicion func(failed reconcile.Result, request int) bool

// Blame names the requests of a batch at fault for the failed steps of a plan, as a
// [reconcile.Refusal]. The suspicions about a step are asked in order, the narrowest first, until
// one is about any request. It returns the error itself where no request is known to be at
// fault for a step, or all are.
func Blame(err error, failures []reconcile.Result, requests int, suspicions func(failed reconcile.Result) []Suspicion) error {
	culprits := map[int]error{}
	for _, failed := range failures {
		found := false
		for _, suspects := range suspicions(failed) {
			for i := range requests {
				if suspects(failed, i) {
					culprits[i], found = fmt.Errorf("%s: %w", failed.Step.Why, failed.Err), true
				}
			}
			if found {
				break
			}
		}
		if !found {
			return err
		}
	}
	if len(culprits) == 0 || len(culprits) == requests {
		return err
	}
	return &reconcile.Refusal{Culprits: culprits}
}

// Mentions reports whether a text of Azure's, in lower case, has an id, a name or an address, and
// not only as part of a longer one.
func Mentions(text, word string) bool {
	const inNames = "abcdefghijklmnopqrstuvwxyz0123456789-_/"
	for at := 0; word != ""; at += len(word) {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		at += i
		before, after := text[max(at-1, 0):at], text[at+len(word):]
		if (word[0] == '/' || !strings.ContainsAny(before, inNames)) && !strings.ContainsAny(after[:min(len(after), 1)], inNames) {
			return true
		}
	}
	return false
}
