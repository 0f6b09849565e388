package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Selection is what a selector says of labels.
type Selection int

// What a selector says.
const (
	Any Selection = iota // it says nothing
	Yes
	No
)

// Selects is what a selector says of labels. A selector that cannot be read selects nothing; the
// cloud configuration is checked for those.
func Selects(s *metav1.LabelSelector, of map[string]string) Selection {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return Any
	}
	if selector, err := metav1.LabelSelectorAsSelector(s); err == nil && selector.Matches(labels.Set(of)) {
		return Yes
	}
	return No
}
