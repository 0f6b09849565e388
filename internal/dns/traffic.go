package dns

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/plan/records"
)

// traffic makes writes of Traffic Manager, in order.
func (r *run) traffic(ctx context.Context, writes []records.Write) error {
	for _, w := range writes {
		needed, err := r.needed(ctx, w)
		if err == nil && needed {
			_, err = azure.Do(ctx, r.config.Azure, azure.Request{Verb: w.Verb, ID: w.ID, Body: w.Body, Priority: azure.Provision})
			r.config.Metrics.routed(w, err)
			r.config.Log.InfoContext(ctx, "traffic manager written", "write", w.String(), "error", err)
		}
		if err != nil && (w.Verb != azure.Delete || !azure.IsNotFound(err)) {
			return fmt.Errorf("%v: %w", w, err)
		}
	}
	return nil
}

// profile is a profile of Traffic Manager.
type profile struct {
	Endpoints []struct {
		ID azure.ID `json:"id"`
	} `json:"endpoints"`
}

// errForeign is the error of a profile that is not of the record.
var errForeign = errors.New("the profile has no tag " + records.RecordTag + " with the name of the record, so it stays as it is")

// needed reports whether a write is to be made, after a look at what is there.
func (r *run) needed(ctx context.Context, w records.Write) (bool, error) {
	if !w.ID.Is(records.ProfileType) {
		return r.endpointNeeded(ctx, w)
	}
	doc, err := r.config.Azure.Fresh().Get(ctx, w.ID)
	if azure.IsNotFound(err) {
		return w.Verb != azure.Delete, nil
	}
	if err != nil {
		return false, err
	}
	have, err := azure.Decode[profile](doc)
	if err == nil && !isOf(have.Tags, w.Record) {
		err = errForeign
	}
	return len(have.Properties.Endpoints) == 0 || w.Replace, err
}

// isOf reports whether tags are those of the profile of a record. Azure compares the names of tags without regard to case.
func isOf(tags map[string]string, record string) bool {
	for key, value := range tags {
		if strings.EqualFold(key, records.RecordTag) {
			return strings.EqualFold(value, record)
		}
	}
	return false
}

// endpointNeeded is needed for endpoints. Before one is written, its profile was looked at.
func (r *run) endpointNeeded(ctx context.Context, w records.Write) (bool, error) {
	at := w.ID
	if w.Verb == azure.Delete {
		at = w.ID.Parent()
	} else if !w.Ensure {
		return true, nil
	}
	doc, err := r.config.Azure.Fresh().Get(ctx, at)
	switch {
	case azure.IsNotFound(err):
		return w.Verb != azure.Delete, nil
	case err != nil:
		return false, err
	case w.Verb != azure.Delete:
		same, err := isAs(doc, w.Body)
		return !same, err
	}
	have, err := azure.Decode[profile](doc)
	if err == nil && !isOf(have.Tags, w.Record) {
		err = errForeign
	}
	return true, err
}

// isAs reports whether an endpoint is as it is to be.
func isAs(doc, body azure.Document) (bool, error) {
	have, err := azure.Decode[map[string]any](doc)
	if err != nil {
		return false, err
	}
	want, err := azure.Decode[map[string]any](body)
	for key, value := range want.Properties {
		if plain(have.Properties[key]) != plain(value) {
			return false, err
		}
	}
	return true, err
}

// plain is a value as a text to compare: Azure spells names of regions in its own way.
func plain(value any) string {
	return strings.ToLower(strings.ReplaceAll(fmt.Sprint(value), " ", ""))
}

// trafficFailed deals with a write of Traffic Manager that failed before that of its record set. A refusal is that of the record.
func (r *run) trafficFailed(ctx context.Context, s records.Step, err error) error {
	e, ok := errors.AsType[*azure.Error](err)
	taken := ok && e.Status == http.StatusConflict && strings.EqualFold(e.Code, "Conflict") // the domain belongs to others
	kind := azure.KindOf(err)
	if kind == azure.Invalid || kind == azure.Quota || taken || locked(err) || errors.Is(err, errForeign) {
		r.refuse(ctx, s, records.Refused, err)
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// lacksProfile reports whether the profile of a record set is gone: another cluster that left may have deleted it since it was written.
func (r *run) lacksProfile(ctx context.Context, s records.Step) bool {
	for _, w := range s.Before {
		if w.Verb == azure.Put && w.ID.Is(records.ProfileType) {
			_, err := r.config.Azure.Fresh().Get(ctx, w.ID)
			return azure.IsNotFound(err)
		}
	}
	return false
}

// withdrawn returns the writes that take back new endpoints.
func withdrawn(writes []records.Write) (all []records.Write) {
	for _, w := range writes {
		if w.New {
			all = append(all, records.Write{Verb: azure.Delete, ID: w.ID, Record: w.Record})
		}
	}
	return all
}
