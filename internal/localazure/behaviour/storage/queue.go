package storage

import (
	"regexp"

	"kaz/internal/localazure/behaviour"
)

// QueueType is the type of queues.
const QueueType = AccountType + "/queueServices/queues"

var queueName = regexp.MustCompile(`^[a-z0-9]([a-z0-9]|-[a-z0-9])*$`)

// CheckQueueName refuses names that Azure does not allow.
func CheckQueueName(name string) error { return checkStorageName(name, queueName) }

// completeQueue gives the type of queues what the table of types cannot say.
func completeQueue(t *behaviour.Type) {
	t.Missing = missing("QueueNotFound", "queue")
	t.Own = append(t.Own, madeField, policiesField)
	t.Show = func(_ *behaviour.Call, view behaviour.Object) { behaviour.Hide(view) }
	t.Fill = func(c *behaviour.Call) error {
		if err := CheckQueueName(c.ID.Name()); err != nil {
			return err
		}
		behaviour.Default(c.Doc, "properties.metadata", behaviour.Object{})
		fillMade(c)
		return nil
	}
}

// fillMade notes when a document was made.
func fillMade(c *behaviour.Call) {
	if c.Old == nil {
		c.Doc[madeField] = behaviour.Timestamp(c.Now())
	} else if made := MadeAt(c.Old); made != "" {
		c.Doc[madeField] = made
	}
}
