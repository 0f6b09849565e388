package parameter_test

import (
	"strings"
	"testing"

	"kaz/internal/plan/parameter"
)

type volume struct{ kind, fsType string }

func table() []parameter.Key[volume] {
	return []parameter.Key[volume]{
		{Name: "skuName", Alias: "storageAccountType", Read: parameter.Text(func(v *volume) *string { return &v.kind })},
		{Name: "fsType", Read: parameter.Text(func(v *volume) *string { return &v.fsType })},
	}
}

// The error of an unknown key names the known keys, and the one that may be meant.
func TestUnknownKeys(t *testing.T) {
	for key, hint := range map[string]string{"fstyp": "; did you mean fsType?", "skuNmae": "; did you mean skuName?",
		"storageAcountType": "; did you mean storageAccountType?", "encryption": ""} {
		var v volume
		err := parameter.Read(&v, table(), map[string]string{key: "x"})
		want := "parameter " + key + `: "x" is not allowed: the key is not known; known keys are skuName, fsType` + hint
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", key, err, want)
		}
	}
	var v volume
	if err := parameter.Read(&v, table(), map[string]string{"FSTYPE": "xfs", "StorageAccountType": "Premium_LRS"}); err != nil ||
		v.fsType != "xfs" || !strings.HasPrefix(v.kind, "Premium") {
		t.Errorf("%+v, %v", v, err)
	}
}
