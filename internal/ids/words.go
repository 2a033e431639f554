package ids

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strings"
)

// The words of a name: how, doing what, and who.
const (
	manners = `amber brisk calm candid crisp deft eager fleet frank gentle golden hardy honest jolly keen
		lively lucid mellow merry nimble noble placid plucky prompt proud quiet ready robust serene sharp silver steady
		sturdy sunny swift tidy trusty vivid warm witty`
	doings = `baking carving climbing coasting drifting drumming fishing flying forging gliding grazing
		hiking humming juggling knitting marching mending mowing painting planting racing reading roaming rowing sailing
		sewing singing skating sketching sowing strolling surfing swimming tuning walking weaving whistling writing`
	beings = `badger beaver bison bluejay cedar condor crane cricket curlew dolphin egret falcon ferret
		finch gannet gecko heron hornbill ibex jackdaw kestrel lemur lynx magpie marmot marten newt ocelot oriole osprey otter
		plover puffin raven robin salmon sparrow stoat swallow tapir thrush walrus wombat`
)

// Words returns a random name of three words, as teams and plans get them (facts:
// claude-code §2.1, §6).
func Words() string { return words(rand.Uint64()) }

// WordsOf returns the name of three words that belongs to a seed: always the same
// one. Two seeds may share it.
func WordsOf(seed string) string {
	sum := sha256.Sum256([]byte(seed))
	return words(binary.BigEndian.Uint64(sum[:]))
}

func words(n uint64) string {
	var name []string
	for _, kind := range []string{manners, doings, beings} {
		choice := strings.Fields(kind)
		name = append(name, choice[n%uint64(len(choice))])
		n /= uint64(len(choice))
	}
	return strings.Join(name, "-")
}
