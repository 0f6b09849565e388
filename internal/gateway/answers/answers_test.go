package answers_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"kaz/internal/gateway/answers"
)

// TestHandler checks the code and the text for paths.
func TestHandler(t *testing.T) {
	for path, want := range map[string]string{
		"/404": "404 Not Found\n", "/404/a/b": "404 Not Found\n", "/500": "500 Internal Server Error\n", "/500/x?y=1": "500 Internal Server Error\n",
		"/200": "200 OK\n", "/": "404 Not Found\n", "/x/500": "404 Not Found\n", "/5000": "404 Not Found\n", "/503": "404 Not Found\n",
		"//500": "404 Not Found\n", "/100": "404 Not Found\n",
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			w := httptest.NewRecorder()
			answers.Handler().ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("body")))
			if got := w.Result().Status[:4] + w.Body.String(); got != want {
				t.Errorf("%s %s: %q, want %q", method, path, got, want)
			}
		}
	}
}
