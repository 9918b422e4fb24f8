// MD2 by the test vectors of RFC 1319. RFC 2104 has none with MD2: those values are from Python's
// hmac module over another MD2.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdio>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "client/driver/handshake.h"

namespace slate::driver {
namespace {

std::vector<std::uint8_t> bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", unsigned{byte});
    text += two;
  }
  return text;
}

TEST(HandshakeTest, Md2GivesTheDigestsOfItsRfc) {
  const auto md2_of = [](std::string_view text) { return hex(md2(bytes(text))); };
  EXPECT_EQ(md2_of(""), "8350e5a3e24c153df2275c9f80692773");
  EXPECT_EQ(md2_of("a"), "32ec01ec4a6dac72c0ab96fb34c0b5d1");
  EXPECT_EQ(md2_of("abc"), "da853b0d3f88d99b30283a69e6ded6bb");
  EXPECT_EQ(md2_of("message digest"), "ab4f496bfb2a530b219ff33031fe06b0");
  EXPECT_EQ(md2_of("abcdefghijklmnopqrstuvwxyz"), "4e8ddff3650292ab5a4108c3aa47940b");
  EXPECT_EQ(md2_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
            "da33def2a42df13975352846c30338cd");
  EXPECT_EQ(md2_of("1234567890123456789012345678901234567890123456789012345678901234567890"
                   "1234567890"),
            "d5976f79d83d3a0dc9806c3c66f3efd8");
}

TEST(HandshakeTest, HmacMasksItsKeyTwice) {
  const auto repeated = [](int value, std::size_t count) {
    return std::vector<std::uint8_t>(count, static_cast<std::uint8_t>(value));
  };
  EXPECT_EQ(hex(hmac_md2(bytes("Jefe"), bytes("what do ya want for nothing?"))),
            "292f9d34f9e311846de86c495d7adfa2");
  EXPECT_EQ(hex(hmac_md2(repeated(0x0b, 16), bytes("Hi There"))),
            "b524be0196e491ed44823746cd8923af");
  EXPECT_EQ(hex(hmac_md2(repeated(0xaa, 16), repeated(0xdd, 50))),
            "ff09238e4bded84b5490bc42cfd5c265");
}

TEST(HandshakeTest, TheAnswerCoversEveryFact) {
  DeviceIdentity device = {{}, 1, 0x3b, 0};
  std::iota(device.uuid.begin(), device.uuid.end(), std::uint8_t{0});
  const HandshakeFacts facts = {.driver_version = 13000,
                                .asked_version = 13002,
                                .process = 1234,
                                .thread = 0x89abcdef,
                                .interface_table = 0x1111111111111111,
                                .integrity_table = 0x2222222222222222,
                                .integrity_entry = 0x3333333333333333,
                                .seconds = 1'700'000'000,
                                .devices = {&device, 1}};
  EXPECT_EQ(handshake(facts), (HandshakeAnswer{0x2a210d2f786725d5, 0x651735b684842397}));
  const auto changed = [&](auto change) {
    HandshakeFacts other = facts;
    change(other);
    return handshake(other) != handshake(facts);
  };
  EXPECT_TRUE(changed([](HandshakeFacts& other) { ++other.driver_version; }));
  EXPECT_TRUE(changed([](HandshakeFacts& other) { other.asked_version += 10; }));
  EXPECT_TRUE(changed([](HandshakeFacts& other) { ++other.process; }));
  EXPECT_TRUE(changed([](HandshakeFacts& other) { ++other.thread; }));
  EXPECT_TRUE(changed([](HandshakeFacts& other) { ++other.integrity_entry; }));
  EXPECT_TRUE(changed([](HandshakeFacts& other) { ++other.seconds; }));
  EXPECT_TRUE(changed([](HandshakeFacts& other) { other.devices = {}; }));
}

TEST(HandshakeTest, TwoQuestionsHaveFixedAnswers) {
  HandshakeFacts facts{};
  facts.asked_version = 13010;
  EXPECT_EQ(handshake(facts), (HandshakeAnswer{0x3341181C03CB675C, 0x8ED383AA1F4CD1E8}));
  facts.asked_version = 13021;
  EXPECT_EQ(handshake(facts), (HandshakeAnswer{0x1841181C03CB675C, 0x8ED383AA1F4CD1E8}));
}

}  // namespace
}  // namespace slate::driver
