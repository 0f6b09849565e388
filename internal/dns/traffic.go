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
		if err := r.route(ctx, w); err != nil {
			return fmt.Errorf("%v: %w", w, err)
		}
	}
	return nil
}

func (r *run) route(ctx context.Context, w records.Write) error {
	if w.Ensure || w.Empty {
		doc, err := r.config.Azure.Fresh().Get(ctx, w.ID)
		absent := azure.IsNotFound(err)
		if err != nil && !absent {
			return err
		}
		if w.Empty && absent {
			return nil
		}
		if !absent {
			used, err := isUsed(w, doc)
			if err != nil || used {
				return err
			}
		}
	}
	_, err := azure.Do(ctx, r.config.Azure, azure.Request{Verb: w.Verb, ID: w.ID, Body: w.Body, Priority: azure.Provision})
	r.config.Metrics.routed(w, err)
	r.config.Log.InfoContext(ctx, "traffic manager written", "write", w.String(), "error", err)
	if w.Verb == azure.Delete && azure.IsNotFound(err) {
		return nil
	}
	return err
}

// isUsed reports whether a profile has endpoints, or an endpoint is as it is to be.
func isUsed(w records.Write, doc azure.Document) (bool, error) {
	have, err := azure.Decode[map[string]any](doc)
	if err != nil {
		return false, err
	}
	if w.ID.Is(records.ProfileType) {
		endpoints, _ := have.Properties["endpoints"].([]any)
		return len(endpoints) > 0, nil
	}
	want, err := azure.Decode[map[string]any](w.Body)
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
	if kind := azure.KindOf(err); kind == azure.Invalid || kind == azure.Quota || taken || locked(err) {
		r.refuse(ctx, s, records.Refused, err)
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// withdrawn returns the writes that take back new endpoints.
func withdrawn(writes []records.Write) (all []records.Write) {
	for _, w := range writes {
		if w.New {
			all = append(all, records.Write{Verb: azure.Delete, ID: w.ID})
		}
	}
	return all
}
