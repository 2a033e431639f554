package jsonx

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarshal(t *testing.T) {
	got, err := Marshal(map[string]string{"a": `<b> & "c"`})
	if err != nil || string(got) != `{"a":"<b> & \"c\""}` {
		t.Errorf("%s, %v", got, err)
	}
	got, err = MarshalIndent(struct {
		A []int             `json:"a"`
		B map[string]string `json:"b"`
		C []string          `json:"c"`
	}{[]int{1}, map[string]string{}, []string{}})
	want := "{\n  \"a\": [\n    1\n  ],\n  \"b\": {},\n  \"c\": []\n}"
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func object(t *testing.T, text string) Object {
	t.Helper()
	var o Object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestObjectKeepsOrderAndValues(t *testing.T) {
	o := object(t, `{"z":1.50,"a":"caf\u00e9","m":{"y":1,"x":2},"z":3e2}`)
	if diff := cmp.Diff(`{"z":3e2,"a":"caf\u00e9","m":{"y":1,"x":2}}`, string(MustMarshal(o))); diff != "" {
		t.Error(diff)
	}
	o.Set("a", "<b>")
	o.Set("new", []int{1})
	o.Delete("m")
	o.Delete("missing")
	if diff := cmp.Diff(`{"z":3e2,"a":"<b>","new":[1]}`, string(MustMarshal(o))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"z", "a", "new"}, o.Keys()); diff != "" {
		t.Error(diff)
	}
}

func TestObjectGet(t *testing.T) {
	o := object(t, `{"n":1,"null":null}`)
	n := 7
	if ok, err := o.Get("n", &n); !ok || err != nil || n != 1 {
		t.Errorf("%v, %v, %d", ok, err, n)
	}
	if ok, err := o.Get("missing", &n); ok || err != nil || n != 1 {
		t.Errorf("%v, %v, %d", ok, err, n)
	}
	var s string
	if ok, err := o.Get("n", &s); !ok || err == nil {
		t.Errorf("a number was read as a string: %v, %v", ok, err)
	}
	if !o.Has("null") || o.Has("missing") || o.Raw("missing") != nil {
		t.Error("absent and null are mixed up")
	}
}

func TestObjectCloneIsIndependent(t *testing.T) {
	o := object(t, `{"a":1,"b":2,"c":3}`)
	clone := o.Clone()
	clone.Set("a", 9)
	clone.Delete("b")
	clone.Set("d", 4)
	if diff := cmp.Diff(`{"a":1,"b":2,"c":3}`, string(MustMarshal(o))); diff != "" {
		t.Error(diff)
	}
}

func TestObjectRefusesOtherValues(t *testing.T) {
	for _, text := range []string{`[]`, `1`, `"x"`, `{"a":}`, `{`, ``} {
		var o Object
		if err := json.Unmarshal([]byte(text), &o); err == nil {
			t.Errorf("%q was read as an object", text)
		}
	}
	if o := object(t, `null`); o.Len() != 0 {
		t.Errorf("null has %d keys", o.Len())
	}
}

func FuzzObject(f *testing.F) {
	f.Add([]byte(`{"z":1.50,"a":"caf\u00e9","m":{"y":[1,{}]},"z":3e2}`))
	f.Add([]byte(`{"":null,"\ud800":"\u2028"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var o Object
		if json.Unmarshal(data, &o) != nil {
			t.Skip()
		}
		written := MustMarshal(o)
		var again Object
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatalf("%v: %s", err, written)
		}
		if !bytes.Equal(written, MustMarshal(again)) {
			t.Errorf("%s became %s", written, MustMarshal(again))
		}
		for _, key := range o.Keys() {
			if !again.Has(key) {
				t.Errorf("key %q is lost", key)
			}
		}
	})
}
