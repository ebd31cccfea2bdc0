// A small HTTP server on the loopback interface, which misbehaves as a test asks.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

namespace qact::test {

struct Answer {
  std::string body;
  int status = 200;
  bool ranges = true;
  size_t cut_after = 0;  // bytes of each answer's body, then the connection is closed; 0: never
};

class HttpServer {
 public:
  explicit HttpServer(std::map<std::string, Answer> answers) : answers_(std::move(answers)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(socket_, 8);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpServer() {
    ::shutdown(socket_, SHUT_RDWR);
    ::close(socket_);
    thread_.join();
  }

  std::string url(const std::string& name) const { return url_ + name; }
  int requests() const { return requests_; }
  int64_t bytes_sent() const { return bytes_sent_; }

 private:
  void serve() {
    for (int connection; (connection = ::accept(socket_, nullptr, nullptr)) >= 0;
         ::close(connection)) {
      std::string request(4096, '\0');
      const ssize_t count = ::read(connection, request.data(), request.size());
      request.resize(std::max<ssize_t>(count, 0));
      ++requests_;
      answer(connection, request);
    }
  }

  void answer(int connection, const std::string& request) {
    const size_t slash = request.find('/');
    const std::string name = request.substr(slash + 1, request.find(' ', slash) - slash - 1);
    const auto found = answers_.find(name);
    Answer what = found == answers_.end() ? Answer{"gone", 404} : found->second;
    size_t from = 0;
    const size_t range = request.find("Range: bytes=");
    if (range != request.npos && what.ranges) {
      from = std::stoul(request.substr(range + 13));
      what.status = from < what.body.size() ? 206 : 416;
    }
    const std::string body = what.status == 416 ? "" : what.body.substr(from);
    std::string head = "HTTP/1.1 " + std::to_string(what.status) + " x\r\nConnection: close\r\n";
    head += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    if (what.status == 206) {
      head += "Content-Range: bytes " + std::to_string(from) + "-" +
              std::to_string(what.body.size() - 1) + "/" + std::to_string(what.body.size()) +
              "\r\n";
    }
    send(connection, head + "\r\n");
    const std::string sent = body.substr(0, what.cut_after ? what.cut_after : body.npos);
    bytes_sent_ += static_cast<int64_t>(sent.size());  // first: the client may be quick
    send(connection, sent);
  }

  static void send(int connection, const std::string& text) {
    for (size_t done = 0; done < text.size();) {
      const ssize_t count =
          ::send(connection, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (count <= 0) return;
      done += count;
    }
  }

  std::map<std::string, Answer> answers_;
  std::atomic<int> requests_ = 0;
  std::atomic<int64_t> bytes_sent_ = 0;
  int socket_ = -1;
  std::string url_;
  std::thread thread_;
};

}  // namespace qact::test
