package behaviour

import (
	"iter"

	"kaz/internal/azure"
)

// SubscriptionName is the displayName of every subscription.
const SubscriptionName = "kaz"

// Everywhere yields the resources of a type in all subscriptions.
func Everywhere(w World, fullType string) iter.Seq2[azure.ID, Object] {
	return func(yield func(azure.ID, Object) bool) {
		for _, s := range w.Subscriptions() {
			for id, doc := range w.List(azure.SubscriptionID(s), fullType) {
				if !yield(id, doc) {
					return
				}
			}
		}
	}
}
