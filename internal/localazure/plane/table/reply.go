package table

import (
	"encoding/xml"
	"errors"
	"net/http"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/table/odata"
)

const contentType = "Content-Type"

// reply answers with JSON.
func (c *call) reply(status int, o *odata.Object) {
	c.headers()
	c.out.header.Set(contentType, c.level.ContentType())
	c.out.status, c.out.body = status, o.Bytes()
}

// done answers without content.
func (c *call) done() {
	c.headers()
	c.out.status = http.StatusNoContent
}

// headers writes what all answers of OData have.
func (c *call) headers() {
	c.out.header.Set("Cache-Control", "no-cache")
	c.out.header.Set("X-Content-Type-Options", "nosniff")
	c.out.header.Set("DataServiceVersion", "3.0;")
}

// described begins the answer with a description of its content, such as "Tables" or "Tables/@Element".
func (c *call) described(of string) *odata.Object {
	o := &odata.Object{}
	if c.level != odata.None {
		o.Set("odata.metadata", c.base()+"$metadata#"+of)
	}
	return o
}

// fault is an error of the operations that answer with XML.
type fault struct {
	XMLName xml.Name `xml:"m:error"`
	Space   string   `xml:"xmlns:m,attr"`
	Code    string   `xml:"m:code"`
	Message struct {
		Language string `xml:"xml:lang,attr"`
		Text     string `xml:",chardata"`
	} `xml:"m:message"`
}

// fail answers with an error. Its message begins with a prefix.
func (c *call) fail(err error, prefix string) {
	const language, space = "en-US", "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
	e, ok := errors.AsType[*behaviour.Error](err)
	if !ok {
		e = refuse(http.StatusInternalServerError, "InternalError", "%v", err)
	}
	text := prefix + e.Message + "\nRequestId:" + c.out.header.Get(account.RequestID) + "\nTime:" + behaviour.Timestamp(time.Now())
	if c.query.Get("comp") != "" {
		f := fault{Space: space, Code: e.Code}
		f.Message.Language, f.Message.Text = language, text
		c.out.body = nil
		account.Reply(c.out, e.Status, f)
		return
	}
	var message, inner, outer odata.Object
	message.Set("lang", language)
	message.Set("value", text)
	inner.Set("code", e.Code)
	inner.Set("message", &message)
	outer.Set("odata.error", &inner)
	for _, name := range []string{"ETag", "Location", "DataServiceId", "Preference-Applied"} {
		c.out.header.Del(name)
	}
	c.reply(e.Status, &outer)
}
