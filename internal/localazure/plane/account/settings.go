package account

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
)

// Settings are the settings of a service of an account. A request changes those that it has.
type Settings struct {
	XMLName xml.Name `xml:"StorageServiceProperties"`
	Analytics
	Cors *cors `xml:"Cors"`
}

// Analytics are what a service notes of requests. The local Azure keeps these settings, and notes nothing.
type Analytics struct {
	Logging *logging `xml:"Logging" json:"logging,omitempty"`
	Hour    *metrics `xml:"HourMetrics" json:"hour,omitempty"`
	Minute  *metrics `xml:"MinuteMetrics" json:"minute,omitempty"`
}

type logging struct {
	Version   string    `json:"version"`
	Delete    bool      `json:"delete"`
	Read      bool      `json:"read"`
	Write     bool      `json:"write"`
	Retention retention `xml:"RetentionPolicy" json:"retention"`
}

type metrics struct {
	Version   string    `json:"version"`
	Enabled   bool      `json:"enabled"`
	APIs      *bool     `xml:"IncludeAPIs,omitempty" json:"apis,omitempty"`
	Retention retention `xml:"RetentionPolicy" json:"retention"`
}

type retention struct {
	Enabled bool `json:"enabled"`
	Days    int  `xml:",omitempty" json:"days,omitempty"`
}

type cors struct {
	Rules []corsRule `xml:"CorsRule"`
}

// corsRule allows web pages of other origins to use the service. Its fields are lists with commas between the elements.
type corsRule struct {
	Origins string `xml:"AllowedOrigins"`
	Methods string `xml:"AllowedMethods"`
	Headers string `xml:"AllowedHeaders"`
	Exposed string `xml:"ExposedHeaders"`
	MaxAge  int    `xml:"MaxAgeInSeconds"`
}

// corsPath has the rules in the document of a service.
const corsPath = "properties.cors.corsRules"

// SettingsOf returns the settings in the document of a service.
func SettingsOf(doc behaviour.Object) (Settings, error) {
	const first = "1.0" // the version of the analytics
	all := Settings{Analytics: Analytics{&logging{Version: first}, &metrics{Version: first}, &metrics{Version: first}}, Cors: &cors{}}
	if kept := storage.Analytics(doc); kept != "" {
		if err := json.Unmarshal([]byte(kept), &all.Analytics); err != nil {
			return all, fmt.Errorf("settings of the service: %w", err)
		}
	}
	for _, rule := range behaviour.Objects(doc, corsPath) {
		list := func(name string) string { return strings.Join(behaviour.Texts(rule, name), ",") }
		age, _ := behaviour.Int(rule, "maxAgeInSeconds")
		all.Cors.Rules = append(all.Cors.Rules, corsRule{list("allowedOrigins"), list("allowedMethods"), list("allowedHeaders"),
			list("exposedHeaders"), age})
	}
	return all, nil
}

// ReadSettings reads the settings of a request, which may have others, too, if the target has them.
func ReadSettings(w http.ResponseWriter, r *http.Request, into any) error {
	const most = 64 << 10
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return TooLarge(err)
	}
	if err := xml.Unmarshal(text, into); err != nil {
		return InvalidDocument(err)
	}
	return nil
}

// ReplySettings answers with the settings of a service that has no others.
func ReplySettings(w http.ResponseWriter, azure Azure, service azure.ID) error {
	var doc behaviour.Object
	azure.Look(func(world behaviour.World) { doc, _ = world.Get(service) })
	all, err := SettingsOf(doc)
	if err == nil {
		Reply(w, http.StatusOK, all)
	}
	return err
}

// ChangeSettings changes the settings of a service that a request has, and answers.
func ChangeSettings(w http.ResponseWriter, r *http.Request, azure Azure, service azure.ID) error {
	var given Settings
	if err := ReadSettings(w, r, &given); err != nil {
		return err
	}
	if err := given.Keep(azure, service); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// Keep changes the settings of the service with a document, and leaves those that are nil.
func (s Settings) Keep(azure Azure, service azure.ID) error {
	if err := s.check(); err != nil {
		return err
	}
	return azure.Do(func(w behaviour.World) error {
		doc, _ := w.Get(service)
		all, err := SettingsOf(doc)
		if err != nil {
			return err
		}
		if s.Logging != nil {
			all.Logging = s.Logging
		}
		if s.Hour != nil {
			all.Hour = s.Hour
		}
		if s.Minute != nil {
			all.Minute = s.Minute
		}
		text, err := json.Marshal(all.Analytics)
		if err != nil {
			return err
		}
		w.Edit(service, func(doc behaviour.Object) {
			storage.SetAnalytics(doc, string(text))
			if s.Cors != nil {
				behaviour.Set(doc, corsPath, s.Cors.documents())
			}
		})
		return nil
	})
}

func (c cors) documents() []any {
	rules := []any{}
	for _, rule := range c.Rules {
		rules = append(rules, behaviour.Object{"allowedOrigins": split(rule.Origins), "allowedMethods": split(rule.Methods),
			"allowedHeaders": split(rule.Headers), "exposedHeaders": split(rule.Exposed), "maxAgeInSeconds": rule.MaxAge})
	}
	return rules
}

func split(list string) []any {
	all := []any{}
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word != "" {
			all = append(all, word)
		}
	}
	return all
}

// check returns why Azure refuses the settings.
func (s Settings) check() error {
	const mostRules, longest = 5, 365
	var kept []retention
	if s.Logging != nil {
		kept = append(kept, s.Logging.Retention)
	}
	for _, m := range []*metrics{s.Hour, s.Minute} {
		if m != nil {
			kept = append(kept, m.Retention)
		}
	}
	for _, r := range kept {
		if r.Enabled && (r.Days < 1 || r.Days > longest) {
			return invalidValue("Days", r.Days, "1 to 365 with an enabled RetentionPolicy")
		}
	}
	if s.Cors == nil {
		return nil
	}
	if n := len(s.Cors.Rules); n > mostRules {
		return invalidValue("Cors", n, "at most 5 rules")
	}
	for _, rule := range s.Cors.Rules {
		if rule.Origins == "" || rule.Methods == "" || rule.MaxAge < 0 {
			return invalidValue("CorsRule", rule, "AllowedOrigins, AllowedMethods and a MaxAgeInSeconds of at least 0")
		}
	}
	return nil
}

func invalidValue(name string, value any, want string) error {
	return refuse(http.StatusBadRequest, "InvalidXmlDocument", "XML specified is not syntactically valid: %s is %v, want %s.", name, value,
		want)
}

// statistics say how far the other region of an account is behind.
type statistics struct {
	XMLName xml.Name `xml:"StorageServiceStats"`
	Status  string   `xml:"GeoReplication>Status"`
	Last    string   `xml:"GeoReplication>LastSyncTime"`
}

// ReplyStatistics answers with the statistics of a service. Only the other region of an account has them, and here it is never behind.
func ReplyStatistics(w http.ResponseWriter, secondary bool, now time.Time) error {
	if !secondary {
		return InvalidParameter("comp", "stats", "a request to the secondary endpoint of the account")
	}
	Reply(w, http.StatusOK, statistics{Status: "live", Last: now.UTC().Format(http.TimeFormat)})
	return nil
}
