package queue

import (
	"encoding/base64"
	"encoding/xml"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/queue/kept"
)

// The limits of messages, as Azure documents them. Times are in seconds.
const (
	mostText    = 64 << 10
	mostBody    = 2*mostText + 512 // with the characters that XML spells longer
	week        = 7 * 24 * 60 * 60
	usualHidden = 30 // how long a message is hidden that was handed out
	mostGiven   = 32
)

// list is what requests about messages are answered with.
type list struct {
	XMLName  xml.Name `xml:"QueueMessagesList"`
	Messages []shown  `xml:"QueueMessage"`
}

// shown is a message. Which elements it has depends on the request.
type shown struct {
	ID       string  `xml:"MessageId"`
	Inserted string  `xml:"InsertionTime"`
	Expires  string  `xml:"ExpirationTime"`
	Receipt  string  `xml:"PopReceipt,omitempty"`
	Visible  string  `xml:"TimeNextVisible,omitempty"`
	Taken    *int    `xml:"DequeueCount,omitempty"`
	Text     *string `xml:"MessageText,omitempty"`
}

// never is when a message expires that does not, as Azure spells it.
var never = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

func show(m kept.Message) shown {
	expires := m.Expires
	if expires.IsZero() {
		expires = never
	}
	return shown{ID: m.ID, Inserted: httpTime(m.Inserted), Expires: httpTime(expires)}
}

func httpTime(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// receive adds what a reader gets that can change the message.
func (s shown) receive(m kept.Message) shown {
	s.Receipt, s.Visible = m.Receipt, httpTime(m.Visible)
	return s
}

// read adds the content.
func (s shown) read(m kept.Message) shown {
	s.Taken, s.Text = &m.Taken, m.Text
	return s
}

// seconds returns the value of a parameter, the usual one if the request has none.
func (c *call) seconds(name string, usual, least, most int) (int, error) {
	text := c.query.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, account.InvalidParameter(name, text, "a number")
	}
	if n < least || n > most {
		return 0, behaviour.Refusal(http.StatusBadRequest, "OutOfRangeQueryParameterValue",
			"One of the query parameters specified in the request URI is outside the permissible range: %s is %d, want %d to %d.",
			name, n, least, most)
	}
	return n, nil
}

// text returns the content of a message in the body of the request, nil for an empty body.
func (c *call) text() (*string, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, mostBody))
	if err != nil {
		return nil, tooLarge(mostBody)
	}
	if len(body) == 0 {
		return nil, nil
	}
	var message struct {
		XMLName xml.Name `xml:"QueueMessage"`
		Text    *string  `xml:"MessageText"`
	}
	if err := xml.Unmarshal(body, &message); err != nil {
		return nil, account.InvalidDocument(err)
	}
	if message.Text == nil {
		return nil, behaviour.Refusal(http.StatusBadRequest, "MissingRequiredXmlNode",
			"A required XML node was not specified in the request body: MessageText.")
	}
	if len(*message.Text) > mostText {
		return nil, tooLarge(mostText)
	}
	return message.Text, nil
}

func tooLarge(most int) error {
	return behaviour.Refusal(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge",
		"The request body is too large and exceeds the maximum permissible limit: %d bytes are allowed.", most)
}

// receipt returns what a client must send to change a message that it got.
func receipt() string {
	id := uuid.New()
	return base64.StdEncoding.EncodeToString(id[:])
}

// put adds a message at the end of the queue.
func (c *call) put() error {
	hidden, err := c.seconds("visibilitytimeout", 0, 0, week)
	if err != nil {
		return err
	}
	lives, err := c.seconds("messagettl", week, -1, math.MaxInt32)
	if err != nil {
		return err
	}
	if lives == 0 || lives > 0 && hidden >= lives {
		return account.InvalidParameter("messagettl", strconv.Itoa(lives),
			"-1, or more than the visibilitytimeout of "+strconv.Itoa(hidden))
	}
	text, err := c.text()
	if err != nil {
		return err
	}
	if text == nil {
		text = new(string)
	}
	m := kept.Message{ID: uuid.NewString(), Text: text, Inserted: c.now.UTC(), Visible: after(c.now, hidden), Receipt: receipt()}
	if lives > 0 {
		m.Expires = after(c.now, lives)
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	if err := c.service.kept.Put(c.id.Key(), c.made, m); err != nil {
		return err
	}
	account.Reply(c.w, http.StatusCreated, list{Messages: []shown{show(m).receive(m)}})
	return nil
}

func after(now time.Time, seconds int) time.Time {
	return now.Add(time.Duration(seconds) * time.Second).UTC()
}

// visible returns the first visible messages, as many as the request asks for. The caller holds the lock.
func (c *call) visible(most int) (all []kept.Message) {
	for _, m := range c.service.kept.Live(c.id.Key(), c.made, c.now) {
		if len(all) == most {
			break
		}
		if !c.now.Before(m.Visible) {
			all = append(all, *m)
		}
	}
	return all
}

// get hands out messages, and hides them for a time.
func (c *call) get() error {
	most, err := c.seconds("numofmessages", 1, 1, mostGiven)
	if err != nil {
		return err
	}
	hidden, err := c.seconds("visibilitytimeout", usualHidden, 1, week)
	if err != nil {
		return err
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	var reply list
	var changed []kept.Message
	for _, m := range c.visible(most) {
		m.Taken++
		m.Visible, m.Receipt = after(c.now, hidden), receipt()
		reply.Messages = append(reply.Messages, show(m).receive(m).read(m))
		m.Text = nil
		changed = append(changed, m)
	}
	if len(changed) > 0 {
		if err := c.service.kept.Put(c.id.Key(), c.made, changed...); err != nil {
			return err
		}
	}
	account.Reply(c.w, http.StatusOK, reply)
	return nil
}

// peek answers with messages, and leaves them as they are.
func (c *call) peek() error {
	most, err := c.seconds("numofmessages", 1, 1, mostGiven)
	if err != nil {
		return err
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	var reply list
	for _, m := range c.visible(most) {
		reply.Messages = append(reply.Messages, show(m).read(m))
	}
	account.Reply(c.w, http.StatusOK, reply)
	return nil
}

// clear deletes all messages.
func (c *call) clear() error {
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	if err := c.service.kept.Drop(c.id.Key()); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// findMessage returns the message of the request. Its receipt must be the last one. The caller holds the lock.
func (c *call) findMessage() (kept.Message, error) {
	given := c.query.Get("popreceipt")
	if given == "" {
		return kept.Message{}, missing("popreceipt")
	}
	all := c.service.kept.Live(c.id.Key(), c.made, c.now)
	i := slices.IndexFunc(all, func(m *kept.Message) bool { return m.ID == c.message })
	if i < 0 {
		return kept.Message{}, behaviour.Refusal(http.StatusNotFound, "MessageNotFound", "The specified message does not exist.")
	}
	if all[i].Receipt != given {
		return kept.Message{}, behaviour.Refusal(http.StatusBadRequest, "PopReceiptMismatch",
			"The specified pop receipt did not match the pop receipt for a dequeued message.")
	}
	return *all[i], nil
}

func missing(parameter string) error {
	return behaviour.Refusal(http.StatusBadRequest, "MissingRequiredQueryParameter",
		"A query parameter that's mandatory for this request is not specified: %s.", parameter)
}

// deleteMessage deletes a message.
func (c *call) deleteMessage() error {
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	m, err := c.findMessage()
	if err != nil {
		return err
	}
	if err := c.service.kept.Forget(c.id.Key(), c.made, m.ID); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// update changes how long a message is hidden, and its content if the request has one.
func (c *call) update() error {
	if c.query.Get("visibilitytimeout") == "" {
		return missing("visibilitytimeout")
	}
	hidden, err := c.seconds("visibilitytimeout", 0, 0, week)
	if err != nil {
		return err
	}
	text, err := c.text()
	if err != nil {
		return err
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	m, err := c.findMessage()
	if err != nil {
		return err
	}
	m.Text, m.Visible, m.Receipt = text, after(c.now, hidden), receipt()
	if !m.Expires.IsZero() && m.Visible.After(m.Expires) {
		return account.InvalidParameter("visibilitytimeout", strconv.Itoa(hidden), "an end before the message expires")
	}
	if err := c.service.kept.Put(c.id.Key(), c.made, m); err != nil {
		return err
	}
	c.w.Header().Set("x-ms-popreceipt", m.Receipt)
	c.w.Header().Set("x-ms-time-next-visible", httpTime(m.Visible))
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
