"""A service that answers 400 requests. One of them takes a thousand times as long as the others: which, and why?

    dyntrace run examples/orders.py
    dyntrace why handle orders.db
    dyntrace tree handle orders.db --slowest
"""
import json
import time

rates = {"DE": {"factor": 1.19}, "FR": {"factor": 1.2}}


def read_rates(country):
    time.sleep(0.2)  # stands for a question to another server
    return {"factor": 1.22}


def rate_of(country):
    if country not in rates:
        rates[country] = read_rates(country)
    return rates[country]["factor"]


def price(lines, country):
    total = sum(count * amount for count, amount in lines)
    return round(total * rate_of(country), 2)


def handle(request):
    order = json.loads(request)
    return json.dumps({"id": order["id"], "price": price(order["lines"], order["country"])})


def request(n):
    country = "IT" if n == 271 else ["DE", "FR"][n % 2]
    return json.dumps({"id": n, "country": country, "lines": [[n % 7, 9.5]] * 20})


answers = [handle(request(n)) for n in range(400)]
print(len(answers), "orders")
