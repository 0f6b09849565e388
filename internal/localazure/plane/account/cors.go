package account

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// Share is share for the service, such as "queueServices", of the account of which a name is in the host.
func Share(w http.ResponseWriter, r *http.Request, azure Azure, name, service string) (answered bool) {
	if r.Header.Get("Origin") == "" {
		return false
	}
	var doc behaviour.Object
	azure.Look(func(world behaviour.World) {
		id, _ := Find(world, strings.TrimSuffix(name, secondarySuffix))
		if id != "" {
			doc, _ = world.Get(id.Child(service, "default"))
		}
	})
	return share(w, r, doc)
}

// share says in the answer what a web page of another origin may read of it, by the rules in the document of the service. It answers the
// question of a browser before such a request, and reports whether the request was one.
func share(w http.ResponseWriter, r *http.Request, service behaviour.Object) (answered bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	asks := r.Method == http.MethodOptions
	method := r.Method
	if asks {
		method = r.Header.Get("Access-Control-Request-Method")
	}
	headers := fields(r.Header.Get("Access-Control-Request-Headers"))
	for _, rule := range behaviour.Objects(service, corsPath) {
		origins := behaviour.Texts(rule, "allowedOrigins")
		all := slices.Contains(origins, "*")
		if !all && !contains(origins, origin) || !contains(behaviour.Texts(rule, "allowedMethods"), method) ||
			asks && !matches(behaviour.Texts(rule, "allowedHeaders"), headers) {
			continue
		}
		h := w.Header()
		if all {
			h.Set("Access-Control-Allow-Origin", "*")
		} else {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Credentials", "true")
			h.Add("Vary", "Origin")
		}
		if !asks {
			h.Set("Access-Control-Expose-Headers", strings.Join(behaviour.Texts(rule, "exposedHeaders"), ","))
			return false
		}
		age, _ := behaviour.Int(rule, "maxAgeInSeconds")
		h.Set("Access-Control-Allow-Methods", method)
		h.Set("Access-Control-Allow-Headers", strings.Join(headers, ","))
		h.Set("Access-Control-Max-Age", strconv.Itoa(age))
		w.WriteHeader(http.StatusOK)
		return true
	}
	if asks {
		Fail(w, r, refuse(http.StatusForbidden, "CorsPreflightFailure",
			"CORS not enabled or no matching rule found for this request: origin %q, method %q, headers %q.", origin, method, headers))
	}
	return asks
}

func fields(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func contains(list []string, word string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, word) })
}

// matches reports whether each of the names is in a list, which may have beginnings of names with an asterisk behind.
func matches(list, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(list, func(allowed string) bool {
			before, begins := strings.CutSuffix(allowed, "*")
			name, before := strings.ToLower(name), strings.ToLower(before)
			return name == before || begins && strings.HasPrefix(name, before)
		})
	})
}
