package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Object is a JSON object that remembers the order of its keys, so that a file
// another program wrote can be changed in one field and keep all the others,
// known or not, where they were. The zero value is an empty object.
type Object struct {
	fields []field
}

type field struct {
	key   string
	value json.RawMessage
}

// Len is the number of keys.
func (o *Object) Len() int { return len(o.fields) }

// Keys lists the keys in order.
func (o *Object) Keys() []string {
	keys := make([]string, len(o.fields))
	for i, f := range o.fields {
		keys[i] = f.key
	}
	return keys
}

// Raw returns the value of key, or nil when it is absent. The caller must not
// change the bytes.
func (o *Object) Raw(key string) json.RawMessage {
	if i := o.index(key); i >= 0 {
		return o.fields[i].value
	}
	return nil
}

// Has reports whether key is present, also with the value null.
func (o *Object) Has(key string) bool { return o.index(key) >= 0 }

// Get decodes the value of key into v. It reports whether the key was there;
// an absent key is not an error and leaves v unchanged.
func (o *Object) Get(key string, v any) (bool, error) {
	raw := o.Raw(key)
	if raw == nil {
		return false, nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return true, fmt.Errorf("field %q: %w", key, err)
	}
	return true, nil
}

// Set encodes v as the value of key: in place when the key exists, else at the
// end. A value that JSON cannot express panics.
func (o *Object) Set(key string, v any) {
	raw, ok := v.(json.RawMessage)
	if !ok {
		raw = MustMarshal(v)
	}
	if i := o.index(key); i >= 0 {
		o.fields[i].value = raw
		return
	}
	o.fields = append(o.fields, field{key, raw})
}

// Delete removes key, if it is there.
func (o *Object) Delete(key string) {
	if i := o.index(key); i >= 0 {
		o.fields = append(o.fields[:i:i], o.fields[i+1:]...)
	}
}

// Equal reports whether both have the same keys with the same bytes for values,
// in the same order.
func (o *Object) Equal(other *Object) bool {
	return slices.EqualFunc(o.fields, other.fields, func(a, b field) bool {
		return a.key == b.key && bytes.Equal(a.value, b.value)
	})
}

// Clone returns an independent copy. The raw values are shared: they are never
// changed in place.
func (o *Object) Clone() Object {
	return Object{fields: append([]field(nil), o.fields...)}
}

func (o *Object) index(key string) int {
	for i := range o.fields {
		if o.fields[i].key == key {
			return i
		}
	}
	return -1
}

// MarshalJSON implements [json.Marshaler].
func (o Object) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	for i, f := range o.fields {
		if i > 0 {
			buf.WriteByte(',')
		}
		key, err := Marshal(f.key)
		if err != nil {
			return nil, err
		}
		buf.Write(key)
		buf.WriteByte(':')
		buf.Write(f.value)
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// UnmarshalJSON implements [json.Unmarshaler]. If a key occurs twice, the last value
// wins, as in every JavaScript reader.
func (o *Object) UnmarshalJSON(data []byte) error {
	o.fields = nil
	dec := json.NewDecoder(bytes.NewReader(data))
	open, err := dec.Token()
	if err != nil {
		return err
	}
	if open == nil {
		return nil // null
	}
	if open != json.Delim('{') {
		return fmt.Errorf("want a JSON object, found %v", open)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		o.Set(key.(string), value)
	}
	_, err = dec.Token()
	return err
}
